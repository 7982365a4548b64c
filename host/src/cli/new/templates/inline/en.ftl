help-start = How this bot is used
start = Write my name and a text in any chat.
upper = UPPER CASE
lower = lower case
reverse = backwards
