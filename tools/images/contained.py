"""How programs that mount things are run."""


def contained(*command: str) -> list[str]:
    """`command`, killed when this process dies, with mounts that vanish with it.

    buildah leaves its store mounted and debootstrap, when killed, /proc of the new system; and a build that outlives its caller would go on
    from a context that the next run has replaced.
    """
    return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", *command]
