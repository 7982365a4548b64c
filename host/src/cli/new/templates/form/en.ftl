help-start = Fill in the form
ask-name = What is your name?
ask-age = How old are you, { $name }?
no-age = A whole number from 1 to 150, please.
thanks = { $name }, { $age }. Thank you!
cancelled = Cancelled.
too-late = You did not say how old you are. /start begins anew.
