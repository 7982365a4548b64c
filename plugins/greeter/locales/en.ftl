# Shown in the menu of commands.
cmd-start = Say hello

hello = Hello, { $name }!
