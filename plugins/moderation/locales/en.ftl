cmd-warn = Warn whoever wrote the message that you reply to
cmd-mute = Keep them from writing, for so many minutes
cmd-ban = Throw them out
welcome = Welcome, { $name }!
wants-in = { $name } would like to join.
let-in = Let in
turn-away = Turn away
is-in = { $name } is in. ({ $by })
turned-away = { $name } was turned away. ({ $by })
warned = { $name }, this is warning { $count } of { $most }.
warned-because = { $name }, this is warning { $count } of { $most }: { $reason }
muted = { $minutes ->
    [one] { $name } is silent for a minute.
   *[other] { $name } is silent for { $minutes } minutes.
}
banned = { $name } is out.
banned-word = that word is not used here
reply-to-them = Reply with this command to what they wrote.
not-them = Administrators settle this among themselves.
admins-only = That is for administrators.
