#!/usr/bin/env python3
"""ucg_info, with libucg_heap.so preloaded, says so where large blocks lack the huge pages that
ordinary memory may have.

usage: info.py LIBRARY UCG_INFO
"""

import json
import os
import subprocess
import sys
import tempfile

LIBRARY, UCG_INFO = sys.argv[1:3]
SETTINGS = "/sys/kernel/mm/transparent_hugepage"
SKIPPED = 77
CHOICES = [
    # enabled, shmem_enabled, whether shared memory lacks huge pages
    ("[always] madvise never", "always within_size advise [never] deny force", True),
    ("always [madvise] never", "always within_size advise never [deny] force", True),
    ("[always] madvise never", "always within_size [advise] never deny force", False),
    ("always madvise [never]", "always within_size advise [never] deny force", False),
]


def namespace(command, **options):
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(["unshare", "--mount", *user, *command], capture_output=True, text=True,
                          timeout=60, check=False, **options)


def run(folder, preload, *flags):
    """Runs with the settings in a folder mounted over the system's."""
    script = 'mount --bind "$1" "$2" && export LD_PRELOAD="$3" && shift 3 && exec "$@"'
    return namespace(["sh", "-c", script, "sh", folder, SETTINGS, preload, UCG_INFO, "-d", *flags])


def main():
    if not os.path.isdir(SETTINGS) or namespace(["true"]).returncode != 0:
        return SKIPPED
    failures = 0
    for enabled, shmem_enabled, lacks in CHOICES:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in [("enabled", enabled), ("shmem_enabled", shmem_enabled)]:
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(text + "\n")
            text = run(folder, LIBRARY)
            shm = json.loads(run(folder, LIBRARY, "--format", "json").stdout)["transports"][0]
            without = run(folder, "")
        right = (text.returncode == 0 and ("  huge pages " in text.stdout) == lacks
                 and shm["heap_lacks_huge_pages"] == lacks and "huge pages" not in without.stdout)
        if not right:
            failures += 1
            print(f"FAILED: {enabled}, {shmem_enabled}:\n{text.stdout}{text.stderr}{shm}")
    return 0 if failures == 0 else 1


sys.exit(main())
