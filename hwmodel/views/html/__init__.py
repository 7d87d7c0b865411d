"""One HTML file that holds a whole report or comparison, and needs nothing beside it."""
