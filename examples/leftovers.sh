# SPDX-License-Identifier: Apache-2.0
# What a demo that was killed (kill -9) leaves behind. All that one makes has its process id in its name: brtPID, brtPID-POD.

# of_dead NAME: whether it is a demo's whose process is gone
of_dead() { [[ $1 =~ ^brt([0-9]+)(-|$) ]] && [ ! -e "/proc/${BASH_REMATCH[1]}" ]; }

remove_leftovers() {
  local name dir pid
  for dir in "${TMPDIR:-/tmp}"/brt*; do
    of_dead "${dir##*/}" || continue
    pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$dir/data/stack.json" 2>/dev/null || true)
    # its number may be another process's by now
    if [ -n "$pid" ] && tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "$dir/data"; then kill -9 "$pid"; fi
    rm -rf "$dir"
  done
  command -v ip >/dev/null || return 0
  for name in $(ip netns list 2>/dev/null | cut -d' ' -f1); do
    if of_dead "$name"; then ip netns del "$name" || true; fi
  done
  for name in $(ip -o link show type bridge 2>/dev/null | cut -d: -f2); do
    if of_dead "$name"; then ip link del "$name" || true; fi
  done
}
