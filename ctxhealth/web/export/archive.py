"""A report as one file: Markdown, its charts, and the same as a page that stands alone."""

from __future__ import annotations

import io
import zipfile

from django.template.loader import get_template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ctxhealth.web.export.charts import axis_file, moment_file
from ctxhealth.web.export.report import Picture, Report, markdown_of
from ctxhealth.web.format import moment
from ctxhealth.web.incidents_load import Incident, Stretch, moment_at

AXIS = "axis.svg"


def report_of(
    found: Incident, stretch: Stretch, *, link: str, made_at: int, made_by: str
) -> Report:
    """With pictures of the axis, the opening and the end."""
    pictures = [Picture(AXIS, "Time axis")]
    row = found.page.detail.row
    ends = [(found.dwell, "begin.svg", "When it was detected")]
    ends.append((row.closed_seq or stretch.within.last, "end.svg", "At the end"))
    if found.page.review:
        ends = [(stretch.within.first, "begin.svg", "At the beginning"), ends[-1]]
    for seq, file, title in ends:
        shown = moment_at(found.chat.id, seq, stretch.within)
        if shown is not None:
            at = moment(shown.at)
            when = f"{at:%H:%M:%S} UTC, event {shown.seq}" if at else f"event {shown.seq}"
            pictures.append(Picture(file, f"{title} ({when})", shown))
    return Report(found, stretch, tuple(pictures), link, made_at, made_by)


def zip_of(report: Report) -> bytes:
    """report.md, report.html and the charts as .svg."""
    charts = {each.file: _chart(report, each) for each in report.pictures}
    files = {"report.md": markdown_of(report), "report.html": html_of(report, charts), **charts}
    date = moment(report.made_at)
    stamp = date.timetuple()[:6] if date else (1980, 1, 1, 0, 0, 0)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, stamp), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def html_of(report: Report, charts: dict[str, SafeString]) -> str:
    """One page without any other file, for the screen and for paper."""
    context = {
        "report": report,
        "page": report.page,
        "row": report.page.detail.row,
        "detail": report.page.detail,
        "chat": report.found.chat,
        "title": report.found.chat.summary.title or report.found.chat.external_id,
        "drawn": [(each, charts[each.file]) for each in report.pictures],
        "style": format_html("<style>\n{}</style>", get_template("incidents/report.css").render()),
        "now": report.made_at,
    }
    return get_template("incidents/report.html").render(context)


def _chart(report: Report, picture: Picture) -> SafeString:
    if picture.moment is None:
        return axis_file(report.stretch.axis)
    return moment_file(picture.moment)
