#!/bin/sh
# {name} {version}: made by `beamtalk build --release`.
set -eu
here=$(readlink -f "$0")
ROOTDIR=$(cd "$(dirname "$here")/.." && pwd)
case "${1-}" in
    foreground)
        shift
        BINDIR=$ROOTDIR/erts-{erts}/bin EMU=beam PROGNAME={name}
        export ROOTDIR BINDIR EMU PROGNAME
        unset ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS ERL_LIBS ERL_INETRC
        release=$ROOTDIR/releases/{version}
        exec "$BINDIR/erlexec" -args_file "$release/vm.args" -boot "$release/start" -config "$release/sys" -extra "$@"
        ;;
    version)
        echo "{name} {version}"
        ;;
    *)
        echo "usage: {name} foreground|version" >&2
        exit 2
        ;;
esac
