# Shown in the menu of commands.
cmd-start = Say hello
cmd-language = Choose your language

# HTML.
hello = Hello, { $name }!

menu =
    .language = 🌐 Language

# The language's own name for itself.
language = English
    .which = Which language shall I speak?
    .as-telegram = As Telegram does
    .chosen = I speak English now.
