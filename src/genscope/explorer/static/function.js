import "./room.js";
