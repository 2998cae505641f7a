"""A shop on FastAPI. By hand: target/services/bin/uvicorn --app-dir tests/services shop:app --port 8000"""

import asyncio
import hashlib
import secrets
from typing import Annotated

from fastapi import Depends, FastAPI, Form, Header, HTTPException, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from fastapi.security import OAuth2PasswordBearer, OAuth2PasswordRequestForm
from pydantic import BaseModel, Field
from starlette_compress import CompressMiddleware

app = FastAPI(title="Shop", version="1.0")
app.add_middleware(CompressMiddleware, minimum_size=100)
bearer = OAuth2PasswordBearer(tokenUrl="login")


class Item(BaseModel):
    name: str = Field(min_length=1, examples=["lamp"])
    price: float = Field(gt=0, examples=[9.5])


items: dict[int, Item] = {number: Item(name=f"item {number}", price=number) for number in range(1, 101)}
tokens: dict[str, str] = {}
# who waits for the next piece of news, and the last one
news: dict[str, object] = {"number": 0, "changed": asyncio.Event()}


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "up"}


@app.post("/login")
async def login(form: Annotated[OAuth2PasswordRequestForm, Depends()]) -> dict[str, str]:
    if form.password != f"password of {form.username}":
        raise HTTPException(401, "wrong name or password")
    token = secrets.token_urlsafe(24)
    tokens[token] = form.username
    return {"access_token": token, "token_type": "bearer"}


@app.get("/me")
async def me(token: Annotated[str, Depends(bearer)]) -> dict[str, str]:
    if token not in tokens:
        raise HTTPException(401, "no such token", headers={"WWW-Authenticate": "Bearer"})
    return {"name": tokens[token]}


@app.get("/items")
async def list_items(limit: int = 100) -> list[dict]:
    return [{"id": number, **item.model_dump()} for number, item in list(items.items())[:limit]]


@app.get("/items/{number}")
async def read_item(number: int) -> dict:
    if number not in items:
        raise HTTPException(404, "no such item")
    return {"id": number, **items[number].model_dump()}


@app.post("/items", status_code=201)
async def add_item(item: Item, response: Response) -> dict:
    number = max(items) + 1
    items[number] = item
    response.headers["Location"] = f"/items/{number}"
    return {"id": number, **item.model_dump()}


@app.delete("/items/{number}", status_code=204)
async def remove_item(number: int) -> None:
    if items.pop(number, None) is None:
        raise HTTPException(404, "no such item")


@app.post("/orders")
async def order(item: Item) -> RedirectResponse:
    """Post, redirect, get: the answer is where the order can be seen, relative to here."""
    number = max(items) + 1
    items[number] = item
    return RedirectResponse(f"items/{number}", 303)


@app.post("/uploads")
async def upload(file: UploadFile, note: Annotated[str, Form()] = "") -> dict:
    content = await file.read()
    digest = hashlib.sha256(content).hexdigest()
    return {"name": file.filename, "type": file.content_type, "size": len(content), "sha256": digest, "note": note}


@app.put("/raw")
async def raw(request: Request, content_type: Annotated[str, Header()] = "") -> dict:
    """A body of any size, which is not kept."""
    size, digest = 0, hashlib.sha256()
    async for part in request.stream():
        size += len(part)
        digest.update(part)
    return {"size": size, "sha256": digest.hexdigest(), "type": content_type}


@app.get("/news")
async def wait_for_news(after: int = -1, within: float = 5) -> Response:
    """A long poll: answered once there is news behind `after`, or with 204."""
    while news["number"] <= after:
        try:
            await asyncio.wait_for(news["changed"].wait(), within)
        except TimeoutError:
            return Response(status_code=204)
    return Response(f'{{"number": {news["number"]}}}', media_type="application/json")


@app.post("/news")
async def publish() -> dict:
    news["number"] += 1
    news["changed"].set()
    news["changed"] = asyncio.Event()
    return {"number": news["number"]}
