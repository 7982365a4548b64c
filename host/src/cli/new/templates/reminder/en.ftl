help-start = How this bot is used
help-remind = Be reminded of something
help-forget = Take the last reminder back
usage = Like this: /remind 10m the tea. There are s, m, h and d.
set = In { $time }, then. /forget takes it back.
forgotten = Forgotten.
nothing = There is nothing to forget.
ring = ⏰ { $what }
