"""The Grafana dashboards as code: charts/generate.py writes their JSON into the chart."""
