cmd-remind = Remind me in some minutes
cmd-daily = Remind me every day
cmd-reminders = What is to come, and taking it back

set = { $minutes ->
    [one] In a minute, then.
   *[other] In { $minutes } minutes, then.
}
too-far = From 1 to { NUMBER($most) } minutes, please.
daily = Every day at { $time } ({ $zone }), then.
ring = ⏰ { $what }

none = There is nothing to come.
list = To come; press one to take it back:
once = { $what }, in { $minutes } min
every-day = { $what }, every day
gone = Taken back.
