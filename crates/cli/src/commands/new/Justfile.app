build:
    beamtalk build

test:
    beamtalk test

fmt:
    beamtalk fmt

lint:
    beamtalk check --warnings-as-errors

clean:
    rm -rf _build

ci:
    beamtalk fmt --check
    beamtalk build --warnings-as-errors
    beamtalk test

run:
    beamtalk run Main run
