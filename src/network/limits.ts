/** Limits that both ends of a connection between driver and host use. */

/** The version of everything here and in `host-messages.ts`. Both ends must have the same. */
export const NETWORK_VERSION = 3
/** The path of the WebSocket, on a host and on a driver that nodes join. */
export const NETWORK_PATH = '/manyworlds'

/** From the first byte of a connection to the end of its handshake. */
export const HANDSHAKE_MS = 5000
/** A handshake message, from an unauthenticated peer. */
export const MAX_HANDSHAKE_BYTES = 4 * 1024

/** Frames are cut into pieces of at most this size, so that no worker monopolizes the connection. */
export const CHUNK_BYTES = 256 * 1024
/** One message on the wire: a piece of a frame or a host message. */
export const MAX_MESSAGE_BYTES = 1024 * 1024
/** A reassembled frame of a worker. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024
/** A bundle. */
export const MAX_BUNDLE_BYTES = 512 * 1024 * 1024

/** Unacknowledged bytes before frames have to wait. Host messages do not wait. */
export const WINDOW_BYTES = 4 * 1024 * 1024
/** Bytes that one worker may have on the way in one direction before the other end has consumed some. */
export const STREAM_BYTES = 1024 * 1024
/** The stream of blobs, a number that no worker has; and its credit in bytes. */
export const BLOB_STREAM: number = 2 ** 32 - 1
export const BLOB_STREAM_BYTES: number = 4 * STREAM_BYTES
/** The receiver acknowledges after this many bytes or messages, and with each beat. */
export const ACK_BYTES = 128 * 1024
export const ACK_MESSAGES = 64

/** The interval of heartbeats from both ends. */
export const BEAT_MS = 1000
/** A connection that is silent for this long is closed and made again. */
export const SILENT_MS = 3000
/** A host that has not heard from its driver for this long ends the driver's workers. */
export const LEASE_MS = 15_000
/**
 * By how much longer than the lease a driver waits before it runs the tasks of a silent host on others: never on two at once. The
 * driver speaks for SILENT_MS after it has heard nothing, the host looks at its lease every BEAT_MS, and messages take time.
 */
export const MARGIN_MS = 5000
