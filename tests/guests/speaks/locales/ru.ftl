said = ru { $count } { $count ->
    [one] one
    [few] few
   *[many] many
 }
