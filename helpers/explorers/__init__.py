"""Live figures: controls, a picture, words. Each can be driven without a browser.

explorer = AttentionByHand()
explorer.controls["step"].value = 2
explorer.words
"""

from helpers.explorers.attention_by_hand import AttentionByHand

__all__ = ["AttentionByHand"]
