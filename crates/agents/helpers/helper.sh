#!/bin/sh
# What an agent needs most often, as small commands made of `beamtalk 9p`. The name it is called by says which.
set -eu
name=${0##*/}
own=agent/agents/${AGENT_ID:?is not set: this runs inside a session}

case $name in
inbox) usage='inbox [ID]            list the messages for this session, or print one
inbox done ID         mark one as handled' ;;
reply) usage='reply ID TEXT         answer a message and mark it as handled' ;;
mail) usage='mail [-t TYPE] TO SUBJECT [TEXT]
                      send a message to a session or to "user"; TEXT may come on standard input' ;;
ask) usage='ask TEXT              ask the person, wait, and print the answer' ;;
state) usage='state [STATE]         print or set the state of this session' ;;
note) usage='note TEXT             leave the person a note' ;;
peers) usage='peers                 list the sessions: id, backend, state, alias, role, directory' ;;
skills) usage='skills [NAME]         list the skills, or print one' ;;
evaluate) usage='evaluate [CODE]       evaluate in the workspace; CODE may come on standard input' ;;
*) echo "$name: not a helper" >&2; exit 2 ;;
esac

fail() {
    echo "usage: $usage" >&2
    exit 2
}

# A text as the inside of a JSON string.
json() {
    printf '%s' "$1" | tr -d '\000-\010\013\014\016-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g' |
        awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}

# A field of a JSON object on one line, as it is written there.
field() {
    sed -nE 's/.*"'"$1"'":"(([^"\\]|\\.)*)".*/\1/p'
}

send() {
    beamtalk 9p write "$own/mail" "{\"to\":\"$1\",\"type\":\"$2\",\"subject\":\"$3\",\"body\":\"$4\"}"
}

case ${1-} in
-h | --help)
    echo "usage: $usage"
    exit 0
    ;;
esac

case $name in
inbox)
    case $# in
    0)
        beamtalk 9p ls "$own/inbox" | while read -r file; do
            message=$(beamtalk 9p read "$own/inbox/$file")
            printf '%s\t%s\t%s\t%s\n' "${file%.json}" "$(printf '%s\n' "$message" | field from)" \
                "$(printf '%s\n' "$message" | field type)" "$(printf '%s\n' "$message" | field subject)"
        done
        ;;
    1) beamtalk 9p read "$own/inbox/$1.json" ;;
    *)
        [ "$1" = done ] || fail
        beamtalk 9p write "$own/ctl" "complete $2"
        ;;
    esac
    ;;
reply)
    [ $# -ge 2 ] || fail
    id=$1
    shift
    message=$(beamtalk 9p read "$own/inbox/$id.json")
    kind=$(printf '%s\n' "$message" | field type | sed 's/_REQUEST$/_RESPONSE/')
    subject=$(printf '%s\n' "$message" | field subject)
    send "$(printf '%s\n' "$message" | field from)" "$kind" "Re: $subject" "$(json "$*")"
    beamtalk 9p write "$own/ctl" "complete $id"
    ;;
mail)
    kind=QUERY_REQUEST
    if [ "${1-}" = -t ]; then
        [ $# -ge 2 ] || fail
        kind=$2
        shift 2
    fi
    [ $# -ge 2 ] || fail
    to=$1
    subject=$2
    shift 2
    if [ $# -eq 0 ]; then text=$(cat); else text=$*; fi
    send "$(json "$to")" "$(json "$kind")" "$(json "$subject")" "$(json "$text")"
    ;;
ask)
    [ $# -ge 1 ] || fail
    question="ask '$(printf '%s' "$*" | sed "s/'/''/g")'"
    tries=60
    until said=$(beamtalk 9p rpc "$own/ctl" "$question" 2>&1); do
        # Asked again when the daemon was restarted: it is the same question then.
        case $said in
        *'connection closed'* | *'cannot connect'* | *'not running'*) ;;
        *) tries=0 ;;
        esac
        if [ $((tries -= 1)) -lt 0 ]; then
            printf '%s\n' "$said" >&2
            exit 1
        fi
        sleep 1
    done
    printf '%s\n' "$said"
    ;;
state)
    if [ $# -eq 0 ]; then beamtalk 9p read "$own/state"; else beamtalk 9p write "$own/state" "$1"; fi
    ;;
note)
    [ $# -ge 1 ] || fail
    send user QUERY_REQUEST note "$(json "$*")"
    ;;
peers) beamtalk 9p read agent/agents/list ;;
skills)
    if [ $# -eq 0 ]; then
        beamtalk 9p ls agent/agents/skills | sed 's/\.md$//'
    else
        beamtalk 9p read "agent/agents/skills/$1.md"
    fi
    ;;
evaluate)
    if [ $# -eq 0 ]; then code=$(cat); else code=$*; fi
    beamtalk 9p rpc agent/eval "$code"
    ;;
esac
