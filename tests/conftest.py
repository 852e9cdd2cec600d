"""Before any test imports torch: let Triton interpret its kernels where there is no GPU.

Triton decides that when it is first imported, and a torch optimizer imports it, so that without
this the tests of the kernels would depend on which tests the same process has run before.
"""

import os
import shutil

if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")
