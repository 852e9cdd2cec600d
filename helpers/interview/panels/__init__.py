"""The steps of a mock interview on the screen: a panel for each kind.

Talk        a question: say the answer, then tick the points that it had
FollowUp    a follow-up: say the answer, then compare
Compute     a computation by hand, typed and checked
ReadKernel  an attention function: what is wrong with it?
WriteCode   a function to write, checked
"""

from helpers.interview.panels.base import Panel
from helpers.interview.panels.compute import Compute
from helpers.interview.panels.read_kernel import ReadKernel
from helpers.interview.panels.talk import FollowUp, Talk
from helpers.interview.panels.write_code import WriteCode

__all__ = ["Compute", "FollowUp", "Panel", "ReadKernel", "Talk", "WriteCode"]
