"""The command line: one file for each verb. Nothing imports it, and nothing below it prints or exits."""
