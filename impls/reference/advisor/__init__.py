"""Which strategy to train a model with: what fits on the devices, and what is quick on the links between them.

request   the model, the devices and the links, checked
layouts   every way to spread the model, and what a device then holds
choose    the advice: the simplest way that fits and is not much slower than the quickest
"""

from impls.reference.advisor.choose import Advice, advise

__all__ = ["Advice", "advise"]
