help-start = What this bot does
start = Write something, and I say it back.
