coming = { $cups ->
    [one] One cup of { $kind } tea, coming.
   *[other] { $cups } cups of { $kind } tea, coming.
}
bill = That makes { NUMBER($sum, minimumFractionDigits: 2) }.
hello = Hello, <b>{ $name }</b>!
which = Which tea?
menu-order = Order
menu-help = Help
