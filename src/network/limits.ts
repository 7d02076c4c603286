/** The numbers that both ends of a connection between driver and host go by. */

/** Of everything here and in `host-messages.ts`. Two ends with different numbers do not talk. */
export const NETWORK_VERSION = 2
/** Where a host, or a driver that nodes join, answers to an upgrade. */
export const NETWORK_PATH = '/manyworlds'

/** From the first byte of a connection to its end of the handshake. */
export const HANDSHAKE_MS = 5000
/** A message of the handshake, from somebody we do not know yet. */
export const MAX_HANDSHAKE_BYTES = 4 * 1024

/** Frames are cut into pieces of at most this size, so that no worker keeps the connection to itself. */
export const CHUNK_BYTES = 256 * 1024
/** One message on the wire: a piece of a frame, or what is said about workers. */
export const MAX_MESSAGE_BYTES = 1024 * 1024
/** A whole frame of a worker, put together again. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024
/** A bundle. */
export const MAX_BUNDLE_BYTES = 512 * 1024 * 1024

/** What may be under way and not acknowledged, before frames have to wait. What is said about workers does not wait. */
export const WINDOW_BYTES = 4 * 1024 * 1024
/** What one worker may have under way in one direction, before the other end has taken some of it. */
export const STREAM_BYTES = 1024 * 1024
/** The stream on which blobs come: a number that no worker has. What may be under way on it. */
export const BLOB_STREAM: number = 2 ** 32 - 1
export const BLOB_STREAM_BYTES: number = 4 * STREAM_BYTES
/** The receiver acknowledges after so many bytes or messages, and with each beat. */
export const ACK_BYTES = 128 * 1024
export const ACK_MESSAGES = 64

/** Both ends say every so often that they are there. */
export const BEAT_MS = 1000
/** A connection on which nothing comes for this long is given up, and made anew. */
export const SILENT_MS = 3000
/**
 * After the other end has closed the connection, it may be back within this time: it was not the process that ended. More
 * than SILENT_MS, since it may find out only then.
 */
export const RETURN_MS = 4000
/** A host that has not heard from its driver for so long ends its workers. */
export const LEASE_MS = 15_000
/** A driver that has not heard from a host for so long has its tasks run elsewhere. Later than the lease: never in two places. */
export const LOST_MS = 20_000
