"""What Java has under which names, asked once.

PySpark asks for the class and for the method of each column that it makes: a quarter of all its
calls to Java.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView

_CLASSES = (
    "PythonSQLUtils",
    "PythonUtils",
    "functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
)


class _Class(JavaClass):  # type: ignore[misc]
    """A Java class that keeps the static methods it was asked for."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember(jvm: JVMView) -> None:
    """Keep the classes that PySpark asks a JVM for most, and their methods."""
    for name in _CLASSES:
        kept = getattr(jvm, name)
        kept.__class__ = _Class
        jvm.__dict__[name] = kept
