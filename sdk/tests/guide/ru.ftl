coming = { $cups ->
    [one] { $cups } чашка чая ({ $kind }), уже несут.
    [few] { $cups } чашки чая ({ $kind }), уже несут.
   *[many] { $cups } чашек чая ({ $kind }), уже несут.
}
bill = С вас { NUMBER($sum, minimumFractionDigits: 2) }.
hello = Здравствуйте, <b>{ $name }</b>!
which = Какой чай?
menu-order = Заказать
menu-help = Помощь
