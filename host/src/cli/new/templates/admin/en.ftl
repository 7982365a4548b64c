help-rules = Show the rules of this group
help-setrules = Set the rules (administrators)
no-rules = There are no rules yet. /setrules and a text sets them.
admins-only = Only administrators can do that.
usage = Write the rules behind the command: /setrules Be kind.
saved = Saved. /rules shows them.
no-links = { $name }, no links here, please.
