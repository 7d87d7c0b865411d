"""The optimal search and its proof."""
