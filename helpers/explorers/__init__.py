"""Live figures: controls, a picture, words. Each can be driven without a browser.

explorer = AttentionByHand()
explorer.controls["step"].value = 2
explorer.words
"""

from helpers.explorers.attention_by_hand import AttentionByHand
from helpers.explorers.dot_product_spread import DotProductSpread
from helpers.explorers.live_runs import LiveRuns
from helpers.explorers.online_softmax import OnlineSoftmax
from helpers.explorers.softmax_saturation import SoftmaxSaturation
from helpers.explorers.tiles import Tiles

__all__ = [
    "AttentionByHand",
    "DotProductSpread",
    "LiveRuns",
    "OnlineSoftmax",
    "SoftmaxSaturation",
    "Tiles",
]
