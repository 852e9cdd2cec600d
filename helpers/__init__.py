"""What all lessons share: the mathematics, the measurements, the pictures, the practice.

Importing this package imports nothing else; each lesson names the modules it needs.
Imports go one way: practice → explorers → pictures, and everything may use `helpers.attention`.
"""
