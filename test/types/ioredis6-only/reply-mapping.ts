// ioredis 6 types its clients by how they map replies; the store takes them all.
import { redisStore } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'

redisStore(new Redis({ replyMapping: 'resp3', protocol: 3 }))
redisStore(new Redis({ replyMapping: 'legacy' }))
redisStore(new Cluster([], { redisOptions: { replyMapping: 'resp3' } }))
