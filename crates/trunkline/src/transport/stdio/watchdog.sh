# Reads records of servers until its input ends, which is when the host ends, however it ends; then
# stops what is left of them. Portable: dash, bash, busybox. `/proc` is used where there is one.
#
#   + SLOT ITEM…   the record of a server, in place of an earlier one of the same slot
#   a SLOT ITEM…   more items of a record: a shell reads a pipe byte by byte, so records are not repeated
#   - SLOT         the server is gone
#
# An item is a letter and a value: g and a process group, t and a spawn ID that its processes carry
# in their environment, c and the folder of a cgroup, p and a process with the time of its start.

trap '' HUP INT TERM PIPE
last=-1
while read -r word slot record; do
  case $slot in '' | *[!0-9]*) continue ;; esac
  case $word in
    +) eval "record_$slot=\$record"; [ "$slot" -le "$last" ] || last=$slot ;;
    a) eval "record_$slot=\"\$record_$slot \$record\"" ;;
    -) unset "record_$slot" ;;
  esac
done

groups= cgroups= processes=
set --
slot=0
while [ "$slot" -le "$last" ]; do
  eval "record=\${record_$slot-}"
  for item in $record; do
    value=${item#?}
    case $item in
      g*) groups="$groups $value" ;;
      c*) cgroups="$cgroups $value" ;;
      p*) processes="$processes $value" ;;
      # Of this length and no other: grep takes an empty pattern for one that every process matches.
      t????????????????????????????????) set -- "$@" -e "$value" ;;
    esac
  done
  slot=$((slot + 1))
done
[ -n "$groups$cgroups$processes" ] || exit 0

# Sets `start` to when process $1 was started: the 20th field after its name, which may hold anything.
look() {
  text= start=
  [ -r "/proc/$1/stat" ] || return
  while read -r line; do text="$text $line"; done <"/proc/$1/stat"
  set -- ${text##*) }
  [ "$1" = Z ] || start=${20}
}

# Sends signal $1 to the processes that have left their groups, found by the patterns for grep that
# follow. Sets `found` if there was one.
strays() {
  signal=$1 found=
  shift
  for process in $processes; do
    look "${process%:*}"
    [ "$start" = "${process#*:}" ] && kill -s "$signal" "${process%:*}" && found=1
  done
  [ $# -gt 0 ] || return
  for file in $(grep -lsF "$@" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    kill -s "$signal" "${file%/environ}" && found=1
  done
}

for group in $groups; do kill -s TERM -- "-$group"; done
strays TERM "$@"
# For servers that clean up when they are asked to end.
sleep 2
for cgroup in $cgroups; do echo 1 >"$cgroup/cgroup.kill"; done
for group in $groups; do kill -s KILL -- "-$group"; done
# More than once: a process may start others while it is looked for.
round=0
while [ "$round" -lt 20 ]; do
  strays KILL "$@"
  for cgroup in $cgroups; do [ ! -d "$cgroup" ] || rmdir "$cgroup" || found=1; done
  [ -n "$found" ] || exit 0
  sleep 0.1 || sleep 1
  round=$((round + 1))
done
