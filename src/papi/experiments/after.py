"""Methods that are not in the paper's tables, with the defaults of their releases. Most came after the paper."""

from papi.experiments.suites import Entry

DIRK = Entry("DIRK", "dirk")
DIRK_REF = Entry("DIRK-REF", "dirk", ("refinement_weight=1",))
EM = Entry("EM", "em")
NEIGHBOURS = Entry("Neighbour votes", "neighbours")
AFTER = (DIRK, DIRK_REF, EM, NEIGHBOURS)
