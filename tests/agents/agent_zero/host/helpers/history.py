"""Messages in topics, topics in bulks, and a cascade that makes them smaller.

The rules are those that the plugin rests on: counts are kept with each message, a blank summary
stands for nothing, a pass deletes topics by position after its await, ``True`` means that
something was moved.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from plugins._model_config.helpers import model_config

from helpers import tokens

SUMMARY_PROMPT = "fw.topic_summary.sys.md"


class Message:
    def __init__(self, ai: bool, content: Any, tokens: int = 0, id: str = "") -> None:
        self.id = id or str(uuid.uuid4())
        self.ai, self.content, self.summary = ai, content, ""
        self.tokens = tokens or self._counted()

    def get_tokens(self) -> int:
        self.tokens = self.tokens or self._counted()
        return self.tokens

    def set_summary(self, summary: str) -> None:
        self.summary, self.tokens = summary, 0
        self.tokens = self._counted()

    def output_text(self) -> str:
        shown = self.summary or self.content
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        return f"{'ai' if self.ai else 'user'}: {text}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "_cls": "Message", "id": self.id, "ai": self.ai, "content": self.content,
            "summary": self.summary, "tokens": self.tokens,
        }  # fmt: skip

    def _counted(self) -> int:
        return tokens.approximate_tokens(self.output_text())


class Topic:
    def __init__(self, history: History) -> None:
        self.history, self.summary = history, ""
        self.messages: list[Message] = []

    def get_tokens(self) -> int:
        if self.summary:
            return tokens.approximate_tokens(self.summary)
        return sum(message.get_tokens() for message in self.messages)

    def output_text(self) -> str:
        return self.summary or "\n".join(message.output_text() for message in self.messages)

    def compress_large_messages(self, share: float = 0.25) -> bool:
        limit = self.history._get_ctx_size_for_history() * share
        large = [m for m in self.messages if not m.summary and m.get_tokens() > limit]
        if not large:
            return False
        largest = max(large, key=Message.get_tokens)
        text = largest.output_text().partition(": ")[2]
        keep = int(len(text) * limit / largest.get_tokens())
        # Only what is well above the limit is cut; the rest is merely written anew, with a sign.
        cut = text if len(text) <= keep * 1.15 else text[: int(keep * 0.85)]
        largest.set_summary(json.dumps(cut))
        return True

    async def compress(self) -> bool:
        return self.compress_large_messages() or await self.compress_attention(0.65)

    async def compress_attention(self, ratio: float) -> bool:
        middle = len(self.messages) - 2
        count = middle - int(middle * ratio)
        if middle < 2 or count < 1:
            return False
        summary = await self.history.summarise(
            "\n".join(message.output_text() for message in self.messages[1 : count + 1])
        )
        self.messages[1 : count + 1] = [Message(False, {"messages_summary": summary})]
        return True

    def to_dict(self) -> dict[str, Any]:
        return {"_cls": "Topic", "summary": self.summary,
                "messages": [message.to_dict() for message in self.messages]}  # fmt: skip


class Bulk:
    def __init__(self, history: History) -> None:
        self.history, self.summary = history, ""
        self.records: list[Any] = []

    def get_tokens(self) -> int:
        if self.summary:
            return tokens.approximate_tokens(self.summary)
        return sum(record.get_tokens() for record in self.records)

    def output_text(self) -> str:
        return self.summary or "\n".join(record.output_text() for record in self.records)

    async def summarize(self) -> str:
        self.summary = await self.history.summarise(self.output_text())
        return self.summary

    def to_dict(self) -> dict[str, Any]:
        return {"_cls": "Bulk", "summary": self.summary,
                "records": [record.to_dict() for record in self.records]}  # fmt: skip


class History:
    def __init__(self, agent: Any) -> None:
        self.agent, self.counter = agent, 0
        self.bulks: list[Bulk] = []
        self.topics: list[Topic] = []
        self.current = Topic(history=self)

    def get_bulks_tokens(self) -> int:
        return sum(bulk.get_tokens() for bulk in self.bulks)

    def get_topics_tokens(self) -> int:
        return sum(topic.get_tokens() for topic in self.topics)

    def get_current_topic_tokens(self) -> int:
        return self.current.get_tokens()

    def get_tokens(self) -> int:
        return self.get_bulks_tokens() + self.get_topics_tokens() + self.get_current_topic_tokens()

    def is_over_limit(self) -> bool:
        return self.get_tokens() > self._get_ctx_size_for_history()

    def add_message(self, ai: bool, content: Any, tokens: int = 0, id: str = "") -> Message:
        self.counter += 1
        message = Message(ai, content, tokens, id)
        self.current.messages.append(message)
        return message

    def new_topic(self) -> None:
        if self.current.messages:
            self.topics.append(self.current)
            self.current = Topic(history=self)

    async def summarise(self, text: str) -> str:
        told: str = await self.agent.call_utility_model(
            system=self.agent.read_prompt(SUMMARY_PROMPT), message=text
        )
        return told

    async def compress(self) -> bool:
        limit = self._get_ctx_size_for_history()
        target, moved, before = limit * 0.8, False, None
        while self.get_tokens() > limit or moved:
            total = self.get_tokens()
            if before is not None and total >= before:
                break
            before = total
            parts = [
                (self.get_current_topic_tokens() / 0.5, 0.5, self.current.compress),
                (self.get_topics_tokens() / 0.3, 0.3, self.compress_topics),
                (self.get_bulks_tokens() / 0.2, 0.2, self.compress_bulks),
            ]
            parts.sort(key=lambda part: -part[0])
            for weight, _, act in parts:
                if weight > target and await act():
                    moved = True
                    break
            else:
                break
        return moved

    async def compress_topics(self) -> bool:
        if any(topic.compress_large_messages(0.06) for topic in self.topics):
            return True
        for topic in self.topics:
            if await topic.compress_attention(0):
                return True
        if not self.topics:
            return False
        count = 3 if len(self.topics) >= 3 else 1
        bulk = Bulk(history=self)
        bulk.records.extend(self.topics[:count])
        await bulk.summarize()
        self.bulks.append(bulk)
        self.topics[:count] = []
        return True

    async def compress_bulks(self) -> bool:
        if not self.bulks:
            return False
        merged = []
        for start in range(0, len(self.bulks), 3):
            bulk = Bulk(history=self)
            bulk.records = list(self.bulks[start : start + 3])
            await bulk.summarize()
            merged.append(bulk)
        self.bulks = merged
        return True

    def _get_ctx_size_for_history(self) -> int:
        config = model_config.get_chat_model_config(self.agent)
        return int(config["ctx_length"] * config["ctx_history"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "_cls": "History", "counter": self.counter,
            "bulks": [bulk.to_dict() for bulk in self.bulks],
            "topics": [topic.to_dict() for topic in self.topics],
            "current": self.current.to_dict(),
        }  # fmt: skip


def deserialize_history(text: str, agent: Any) -> History:
    history, data = History(agent), json.loads(text)
    history.counter = data["counter"]
    history.bulks = [_read(history, bulk) for bulk in data["bulks"]]
    history.topics = [_read(history, topic) for topic in data["topics"]]
    history.current = _read(history, data["current"])
    return history


def _read(history: History, data: dict[str, Any]) -> Any:
    if data["_cls"] == "Message":
        message = Message(data["ai"], data["content"], data["tokens"], data["id"])
        message.summary = data["summary"]
        return message
    if data["_cls"] == "Topic":
        topic = Topic(history)
        topic.summary = data["summary"]
        topic.messages = [_read(history, message) for message in data["messages"]]
        return topic
    bulk = Bulk(history)
    bulk.summary = data["summary"]
    bulk.records = [_read(history, record) for record in data["records"]]
    return bulk
