"""What config/monitoring asks Prometheus for is what a running extender tells, and its alerts fire when they should.

usage: monitoring_test.py MORTISE_EXTENDER
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SOURCE_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MONITORING = os.path.join(SOURCE_DIR, "config", "monitoring")
ADDED_BY_PROMETHEUS = {"job", "instance", "le"}
METRIC = re.compile(r"\bmortise_[a-z_]+")


def read(*path):
    with open(os.path.join(SOURCE_DIR, *path), encoding="utf-8") as f:
        return f.read()


def scrape(extender):
    """Series name -> label -> values, of an extender with TLS."""
    with tempfile.TemporaryDirectory() as certs:
        subprocess.run([os.path.join(SOURCE_DIR, "config", "kube", "make-certs"), certs], check=True, capture_output=True)
        process = subprocess.Popen(
            [extender, "--cluster", "dgx-a100:2", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
             "--tls-cert", os.path.join(certs, "tls.crt"), "--tls-key", os.path.join(certs, "tls.key")],
            stdout=subprocess.PIPE, text=True)
        try:
            admin = next(line.split()[-1] for line in process.stdout if line.startswith("admin on "))
            with urllib.request.urlopen(f"http://{admin}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        finally:
            process.kill()
            process.communicate()
    series = {}
    for name, labels in re.findall(r"^(mortise_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        known = series.setdefault(name, {})
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            known.setdefault(label, set()).add(value)
    return series


def rules():
    """The expressions and texts of alerts.yaml, by alert; a whole alert is one string, as no YAML is needed to find names."""
    parts = re.split(r"^  - alert: (\w+)$", read("config", "monitoring", "alerts.yaml"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def queries():
    """Panel -> its queries with their legends, as one string."""
    dashboard = json.loads(read("config", "monitoring", "dashboard.json"))
    return {panel["title"]: "\n".join(t["expr"] + " " + t["legendFormat"] for t in panel["targets"])
            for panel in dashboard["panels"]}


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.series = scrape(EXTENDER)

    def check_expression(self, where, text):
        names = set(METRIC.findall(text))
        for name in names:
            self.assertIn(name, self.series, where)
        # What is asked of one series must be so; where several are in one text, of one of them.
        labels = set().union(*(self.series[n] for n in names)) | ADDED_BY_PROMETHEUS
        asked = set(re.findall(r"\$labels\.(\w+)", text)) | set(re.findall(r"\{\{(\w+)\}\}", text))
        for group in re.findall(r"\bby \(([\w, ]*)\)", text):
            asked |= {label.strip() for label in group.split(",")}
        self.assertLessEqual(asked, labels, where)
        for name, matchers in re.findall(r"\b(mortise_[a-z_]+)\{([^}]*)\}", text):
            for label, value in re.findall(r'(\w+)!?="([^"$]*)"', matchers):
                self.assertIn(value, self.series[name].get(label, ()), f"{where}: {name}{{{label}}}")

    def test_every_alert_asks_for_what_there_is(self):
        self.assertTrue(rules())
        for alert, text in rules().items():
            self.check_expression(alert, text)

    def test_every_panel_asks_for_what_there_is(self):
        self.assertTrue(queries())
        for panel, text in queries().items():
            self.check_expression(panel, text)

    def test_the_operators_page_says_what_to_do_about_each_alert(self):
        page = read("docs", "operate.md")
        for alert in rules():
            self.assertIn(f"`{alert}`", page)

    def test_the_operators_page_explains_every_metric_in_use(self):
        page = read("docs", "operate.md")
        for name in METRIC.findall("\n".join([*queries().values(), *rules().values()])):
            self.assertIn(f"`{re.sub('_bucket$', '', name)}", page)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool (Debian: prometheus)")
    def test_the_alerts_fire_when_they_should(self):
        for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
            done = subprocess.run(["promtool", *command], cwd=MONITORING, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_case(self):
        cases = read("config", "monitoring", "alerts_test.yaml")
        for alert in rules():
            self.assertRegex(cases, rf"alertname: {alert}\b")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: monitoring_test.py MORTISE_EXTENDER")
    EXTENDER = sys.argv.pop(1)
    unittest.main()
