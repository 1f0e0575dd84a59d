"""What samples say: medians, spreads and ratios with the interval they are known to."""
import random
import statistics

RESAMPLES = 2000


def spread(samples):
    """Half the distance between the quartiles, as a share of the median."""
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / 2 / middle if middle else 0.0


def ratio(ours, theirs, seed=1):
    """The median of the ratios of the rounds, and the 95 % interval of that median by resampling.

    Sample i of both was taken in the same round, so what slowed the machine then slowed both.
    """
    ratios = [a / b for a, b in zip(ours, theirs)]
    pick = random.Random(seed)
    medians = sorted(statistics.median(pick.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return statistics.median(ratios), medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)]


def verdict(low, high, limit):
    """Whether a limit is kept; the samples may not tell."""
    if high <= limit:
        return "kept"
    if low > limit:
        return "missed"
    return "not settled"
