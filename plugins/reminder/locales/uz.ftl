cmd-remind = Bir necha daqiqadan keyin eslat
cmd-daily = Har kuni eslat
cmd-reminders = Kutilayotgan eslatmalar va ularni bekor qilish

set = { $minutes ->
   *[other] { $minutes } daqiqadan keyin eslataman.
}
too-far = Iltimos, 1 dan { NUMBER($most) } daqiqagacha.
daily = Har kuni soat { $time } da ({ $zone }) eslataman.
ring = ⏰ { $what }

none = Hech qanday eslatma yoʻq.
list = Kutilayotgan eslatmalar; bekor qilish uchun bosing:
once = { $what }, { $minutes } daqiqadan keyin
every-day = { $what }, har kuni
gone = Bekor qilindi.
