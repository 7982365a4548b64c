help-menu = Show the menu
question = What would you like?
about-button = About
about = I am a bot with a menu.
back = Back
close = Close
closed = Closed.
