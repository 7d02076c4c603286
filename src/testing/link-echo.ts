import { Socket } from 'node:net'
import { frameReader, writeFrame } from '../engines/frames.ts'
import { endProcess } from '../worker/watchdog-contract.ts'
import { framesFd } from '../worker/watchdog-start.ts'
import { answerTo } from './link-property.ts'

/** Replaces the worker's program: answers each frame with its size and checksum, for `checkLink`. */

const socket = new Socket({ fd: framesFd, readable: true, writable: true })
socket.on('error', endProcess)
socket.on('close', endProcess)

const onFrame = (frame: Buffer) => {
  const { answer, stallMs } = answerTo(frame)
  writeFrame(socket, answer)
  if (stallMs === 0) return
  socket.pause()
  setTimeout(() => socket.resume(), stallMs)
}

writeFrame(socket, Buffer.alloc(0))
socket.on('data', frameReader(onFrame, endProcess))
