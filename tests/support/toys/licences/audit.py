"""What licences cost, computed again from the lines of a run folder."""

from gpusched_env.audit.reading import NOT_NEGATIVE, FieldReader, number
from gpusched_env.audit.record import Record, lives


def rents(record: Record, fields: FieldReader) -> dict[int, list[float]]:
    """Return what each job pays [€]: its price for every holding, on however many nodes."""
    prices = fields.only("eur_per_h").column("eur_per_h", number, None, NOT_NEGATIVE)
    return {
        job: [(held.end_s - held.start_s) / 3600.0 * prices[record.jobs[job].application] for held in life]
        for job, life in enumerate(lives(record))
    }
