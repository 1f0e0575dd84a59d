build:
    beamtalk build

test:
    beamtalk test

fmt:
    beamtalk fmt

lint:
    beamtalk lint

clean:
    rm -rf _build

ci:
    beamtalk fmt --check
    beamtalk lint
    beamtalk build --warnings-as-errors
    beamtalk test

run:
    beamtalk run Main run
