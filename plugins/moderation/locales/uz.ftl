cmd-warn = Javob berilgan xabar egasini ogohlantirish
cmd-mute = Unga shuncha daqiqa yozishni taqiqlash
cmd-ban = Uni guruhdan chiqarish
welcome = Xush kelibsiz, { $name }!
wants-in = { $name } guruhga qoʻshilmoqchi.
let-in = Qabul qilish
turn-away = Rad etish
is-in = { $name } qabul qilindi. ({ $by })
turned-away = { $name } rad etildi. ({ $by })
warned = { $name }, bu { $most } tadan { $count }-ogohlantirish.
warned-because = { $name }, bu { $most } tadan { $count }-ogohlantirish: { $reason }
muted = { $minutes ->
   *[other] { $name } { $minutes } daqiqa yoza olmaydi.
}
banned = { $name } guruhdan chiqarildi.
banned-word = bu soʻz bu yerda ishlatilmaydi
reply-to-them = Bu buyruqni uning xabariga javob qilib yozing.
not-them = Administratorlar oʻzaro kelishib oladi.
admins-only = Bu administratorlar uchun.
