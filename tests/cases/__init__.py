"""Small public inputs that broke other tools, each tried through the public interface.

A test carries the id of its case in the collection: E for input and units (test_bad_input.py), C for
counts, tiles and energy (test_counting.py), D for low-bit networks (test_lowbit.py), A for real networks
and B for counting rules on small shapes (test_shapes.py). All ids of the collection are here, but:

    E13  is about meters of a running GPU; nothing here measures energy. What a trace measures
         (widths, flip rates) carries the error at which it holds, `signal_error`.
"""
