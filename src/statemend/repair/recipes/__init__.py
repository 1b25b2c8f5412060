"""One module for each recipe. ``recipe.discover`` finds them by their place."""
