"""The hybrid mode: executor jobs, sockets, threads, child processes and signals are real, the clock is not."""

import asyncio
import os
import signal
import socketserver
import sys
import threading
import time

import httpx2
import pytest

from fsm_agent.testing.simulation import (
    Deadlock,
    LeftBehind,
    Patience,
    RandomChoices,
    Schedule,
    simulate,
)

SAME_LOOP = Patience(io=0.01)
REAL_ANSWERS = Patience(io=20)  # no limit in practice: an answer ends the wait


def test_the_clock_does_not_jump_over_a_running_job():
    def work():
        time.sleep(0.005)
        return "worked"

    async def program():
        return await asyncio.wait_for(asyncio.to_thread(work), timeout=0.001)

    run = simulate(program)
    assert (run.result, run.elapsed) == ("worked", 0)


def test_jobs_are_delivered_in_the_order_of_submission_whichever_ends_first():
    async def program():
        ended = []

        async def job(name, seconds):
            await asyncio.to_thread(time.sleep, seconds)
            ended.append(name)

        await asyncio.gather(job("slow", 0.005), job("quick", 0), job("other", 0.001))
        return ended

    assert simulate(program, patience=REAL_ANSWERS).result == ["slow", "quick", "other"]


def test_the_order_of_finished_jobs_is_drawn_and_repeated():
    async def program():
        ended = []

        async def job(name):
            await asyncio.to_thread(str)
            ended.append(name)

        await asyncio.gather(*(job(name) for name in "abc"))
        return "".join(ended)

    runs = [simulate(program, choices=RandomChoices(seed), patience=REAL_ANSWERS) for seed in range(40)]
    assert len({run.result for run in runs}) == 6
    assert all(simulate(program, choices=run.schedule, patience=REAL_ANSWERS) == run for run in runs)


def test_a_job_may_call_back_into_the_loop():
    async def answer():
        await asyncio.sleep(30)
        return 42

    async def program():
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(answer(), loop).result(timeout=20) + 1)

    run = simulate(program, patience=Patience(job=0.01))
    assert (run.result, run.elapsed) == (43, 30)


@pytest.mark.parametrize(
    ("raised", "expected"), [(LookupError, LookupError), (StopIteration, RuntimeError)], ids=["error", "StopIteration"]
)
def test_a_job_raises_into_whoever_awaits_it(raised, expected):
    def work():
        raise raised("from the job")

    async def program():
        await asyncio.get_running_loop().run_in_executor(None, work)

    with pytest.raises(expected):
        simulate(program)


def test_a_job_that_hangs_does_not_hold_up_a_timeout_and_is_reported():
    release = threading.Event()
    begun = threading.Event()

    def hang():
        begun.set()
        release.wait(20)

    async def program():
        loop = asyncio.get_running_loop()
        hanging = asyncio.create_task(asyncio.to_thread(hang))
        await asyncio.to_thread(begun.wait)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hanging, 60)
        assert loop.time() == 60

    with pytest.raises(LeftBehind, match="1 executor job, still running"):
        simulate(program, patience=Patience(job=0.02))
    release.set()


async def echo(reader, writer):
    line = await reader.readline()
    await asyncio.sleep(60)
    writer.write(line.upper())
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("choices", [Schedule(), RandomChoices(1), RandomChoices(2), RandomChoices(3)], ids=repr)
def test_both_ends_of_a_socket_in_the_loop(choices):
    async def program():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with asyncio.timeout(100):
                return await asyncio.gather(*(ask(port) for _ in range(3)))

    run = simulate(program, choices=choices, patience=SAME_LOOP)
    assert run.result == [b"HELLO\n"] * 3
    assert run.elapsed == 60


def test_a_server_in_a_thread_answers_before_a_virtual_timeout():
    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(self.rfile.readline().upper())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = False

    async def program(port):
        async with asyncio.timeout(1):
            return [await ask(port) for _ in range(3)]

    with Server(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.001,))
        thread.start()
        try:
            run = simulate(lambda: program(server.server_address[1]), patience=REAL_ANSWERS)
        finally:
            server.shutdown()
            thread.join()
    assert (run.result, run.elapsed) == ([b"HELLO\n"] * 3, 0)


def test_an_http_client_with_its_own_timeouts_waits_ten_virtual_minutes():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(600)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def program():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with httpx2.AsyncClient(timeout=700) as client:
                answer = (await client.get(f"http://127.0.0.1:{port}/")).text
            async with httpx2.AsyncClient(timeout=500) as client:
                with pytest.raises(httpx2.ReadTimeout):
                    await client.get(f"http://127.0.0.1:{port}/")
            await asyncio.sleep(200)
            return answer

    run = simulate(program, patience=SAME_LOOP)
    assert run.result == "late"
    assert run.elapsed == 600 + 500 + 200


def test_a_socket_left_open_is_named():
    kept = []

    async def program():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        kept.append(server)

    with pytest.raises(LeftBehind, match=r"file descriptor \d+, still watched"):
        simulate(program, patience=SAME_LOOP)
    kept[0].close()


def test_silence_of_everybody_outside_is_a_deadlock():
    async def program():
        async with await asyncio.start_server(echo, "127.0.0.1", 0):
            await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"were silent for 0.01 real seconds"):
        simulate(program, patience=Patience(io=0.001, silence=0.01))


def test_a_thread_wakes_the_loop_before_the_clock_jumps():
    async def program():
        loop = asyncio.get_running_loop()
        called = asyncio.Event()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(called.set))
        thread.start()
        async with asyncio.timeout(600):
            await called.wait()
        thread.join()
        return loop.time()

    assert simulate(program, patience=REAL_ANSWERS).result == 0


def test_a_thread_that_dies_in_silence_leaves_a_deadlock():
    async def program():
        threading.Thread(target=time.sleep, args=(0.005,)).start()
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="no timer is set"):
        simulate(program)


def test_a_child_process_is_waited_for():
    async def program():
        async with asyncio.timeout(1):
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-S", "-E", "-c", "print('from the child')", stdout=asyncio.subprocess.PIPE
            )
            output, _ = await child.communicate()
        return output, child.returncode

    run = simulate(program, patience=REAL_ANSWERS)
    assert (run.result, run.elapsed) == ((b"from the child\n", 0), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal handlers on loops")
def test_a_signal_reaches_its_handler():
    async def program():
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, heard.set)
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            await heard.wait()
        finally:
            loop.remove_signal_handler(signal.SIGUSR1)
        return "heard"

    assert simulate(program).result == "heard"
