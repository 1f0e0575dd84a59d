# Shell functions for agents; load them with: eval "$(beamtalk agents helpers)"

# a: list the sessions
a() { beamtalk agents list "$@"; }

# ap ID TEXT…: prompt a session and print its answer; without TEXT, standard input
ap() {
    _ap_id=$1
    shift
    if [ $# -eq 0 ]; then
        beamtalk agents prompt "$_ap_id" - --queue --wait
    else
        beamtalk agents prompt "$_ap_id" "$*" --queue --wait
    fi
}

# ao ID: follow the output of a session
ao() { beamtalk agents output "$1" --follow; }

# at ID: attach to a session
at() { beamtalk agents attach "$@"; }

# aall TEXT…: prompt every idle session
aall() {
    beamtalk 9p read agent/list | while IFS="$(printf '\t')" read -r _aall_id _aall_backend _aall_state _aall_rest; do
        [ "$_aall_state" = idle ] && beamtalk agents prompt "$_aall_id" "$*"
    done
}

# aev: follow the events
aev() { beamtalk agents events "$@"; }
