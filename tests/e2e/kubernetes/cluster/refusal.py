"""The two ways in which a cluster does not come about."""


class NoCluster(Exception):
    """This machine cannot have one: why, and the next step, in one sentence each. Tests skip with it."""


class ClusterFailure(Exception):
    """It could have one, and something broke: what, with the end of its log. Tests fail with it."""
