"""Parts that vision models share; they know nothing of models.

patches.py           pictures as sequences of patches
grid_position.py     positions of patches on a grid
windows.py           cutting a grid into windows, attention inside of them
stochastic_depth.py  leaving out whole branches in training
"""
