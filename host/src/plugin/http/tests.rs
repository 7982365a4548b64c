//! Against servers on this machine, and names that mean what a test says.
