build:
    beamtalk build

test:
    beamtalk test

fmt:
    beamtalk fmt

lint:
    beamtalk lint

clean:
    beamtalk clean

ci:
    beamtalk fmt --check
    beamtalk build --warnings-as-errors
    beamtalk test

run:
    beamtalk run Main run
